import jakarta.persistence.Entity;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import java.sql.DriverManager;
import java.util.concurrent.ForkJoinPool;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.cfg.Configuration;

// Hibernate over an encrypted database: EXTENSION=$(pellucid extension) java -cp 'lib/*:.' App app.db 100
// after `mvn dependency:copy-dependencies -DoutputDirectory=lib && javac -cp 'lib/*' App.java`. Takes keys (`pellucid init`);
// `encrypt_new=1` seals a new database. HikariCP's `connectionInitSql` cannot load the extension: it comes after the open.
class App {
    public static void main(String[] arguments) throws Exception {
        int writes = Integer.parseInt(arguments[1]);
        // Once in a process, before the first database is opened.
        try (var loader = DriverManager.getConnection("jdbc:sqlite::memory:?enable_load_extension=true");
             var load = loader.prepareStatement("SELECT load_extension(?)")) {
            load.setString(1, System.getenv("EXTENSION"));
            load.execute();
        }

        String parameters = "?vfs=pellucid&encrypt_new=1&journal_mode=WAL&busy_timeout=60000";
        Configuration configuration = new Configuration().addAnnotatedClass(Note.class)
            .setProperty("hibernate.connection.url", "jdbc:sqlite:file:" + arguments[0] + parameters)
            .setProperty("hibernate.dialect", "org.hibernate.community.dialect.SQLiteDialect")
            .setProperty("hibernate.hikari.maximumPoolSize", "20")
            .setProperty("hibernate.hbm2ddl.auto", "update");
        Function<Session, Long> count = session -> session.createQuery("SELECT count(*) FROM note", Long.class).getSingleResult();
        try (SessionFactory factory = configuration.buildSessionFactory()) {
            if (factory.fromSession(count) == 0) {
                factory.inTransaction(session -> IntStream.range(0, 1000).forEach(number -> session.persist(new Note(number))));
            }
            System.out.println("rows " + factory.fromSession(count));
            new ForkJoinPool(20).submit(() -> IntStream.range(0, writes).parallel().forEach(number -> {
                Note note = new Note(number);
                factory.inTransaction(session -> session.persist(note));
                Note read = factory.fromSession(session -> session.find(Note.class, note.id));
                System.out.println("stored " + read.id + " " + read.text);
            })).get();
        }
    }
}

@Entity(name = "note")
class Note {
    @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Long id;
    String text;

    Note() {}

    Note(int number) {
        text = "buy bread, " + number;
    }
}
