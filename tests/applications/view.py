"""A Django view that writes a row and says how many there are."""

from django.contrib.auth.models import User
from django.http import HttpResponse


def add(request):
    User.objects.create(username=f"a text to be found {request.GET['n']}")
    return HttpResponse(str(User.objects.count()))
