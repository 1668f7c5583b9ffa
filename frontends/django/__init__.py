"""Django app: an order that is paid with cambist (docs/django.md). Its public modules are those of `cambist.django`."""
